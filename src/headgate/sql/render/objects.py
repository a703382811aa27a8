"""What is done to objects of many kinds alike: comments, ALTER, DROP."""

from __future__ import annotations

from headgate.sql.ast.alter import ChangeTaskState, RenameObject
from headgate.sql.ast.comments import CommentOn
from headgate.sql.ast.drop import DropObject
from headgate.sql.ast.names import print_identifier, print_if_exists, print_name, print_string, words


def print_comment_on(node: CommentOn) -> str:
    comment = "NULL" if node.comment is None else print_string(node.comment)
    return f"COMMENT ON {node.kind} {print_name(node.name)} IS {comment}"


def print_rename_object(node: RenameObject) -> str:
    target = words(f"ALTER {node.kind}", print_if_exists(node.if_exists), print_name(node.name))
    return f"{target} RENAME TO {print_identifier(node.new_name)}"


def print_change_task_state(node: ChangeTaskState) -> str:
    target = words(f"ALTER {node.kind}", print_if_exists(node.if_exists), print_name(node.name))
    return words(
        target, node.action, f"BINDING {print_string(node.binding)}" if node.binding is not None else ""
    )


def print_drop_object(node: DropObject) -> str:
    return words(
        f"DROP {node.kind}",
        print_if_exists(node.if_exists),
        print_name(node.name),
        "DELETE TOPIC" if node.delete_topic else "",
        "CASCADE" if node.cascade else "",
        "WITH (DROP TARGET = TRUE)" if node.drop_target else "",
    )
