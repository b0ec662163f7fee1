"""The progress bar of an upload, on standard error; where that is no terminal, nothing is shown."""

from typing import Self

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from oku_cli.terminal.console import Terminal


class UploadBar:
    """Shows how far each file is, unless it is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        console = Terminal(stderr=True)
        self._progress = Progress(
            TextColumn("upload {task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        """Begin to show."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._progress.stop()

    def show(self, name: str, sent: int, size: int) -> None:
        """Show how many bytes of a file have arrived."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=size)
        self._progress.update(self._tasks[name], completed=sent)
