"""The broker between coordinator and workers: its URL, its Celery application, and how messages travel."""
