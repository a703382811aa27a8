-- Which way a task runs, and why.
ALTER TABLE task_status ADD COLUMN notice TEXT;
