"""What is done to objects of many kinds alike: comments, ALTER, DROP."""

from __future__ import annotations

from headgate.sql.ast.alter import ChangeTaskState, RenameObject
from headgate.sql.ast.comments import CommentOn
from headgate.sql.ast.drop import DropObject
from headgate.sql.render.values import identifier, if_exists, name, string, words


def comment_on(node: CommentOn) -> str:
    comment = "NULL" if node.comment is None else string(node.comment)
    return f"COMMENT ON {node.kind} {name(node.name)} IS {comment}"


def rename_object(node: RenameObject) -> str:
    target = words(f"ALTER {node.kind}", if_exists(node.if_exists), name(node.name))
    return f"{target} RENAME TO {identifier(node.new_name)}"


def change_task_state(node: ChangeTaskState) -> str:
    target = words(f"ALTER {node.kind}", if_exists(node.if_exists), name(node.name))
    return words(target, node.action, f"BINDING {string(node.binding)}" if node.binding is not None else "")


def drop_object(node: DropObject) -> str:
    return words(
        f"DROP {node.kind}",
        if_exists(node.if_exists),
        name(node.name),
        "DELETE TOPIC" if node.delete_topic else "",
        "CASCADE" if node.cascade else "",
        "WITH (DROP TARGET = TRUE)" if node.drop_target else "",
    )
