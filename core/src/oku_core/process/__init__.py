"""What every process of Oku needs: a clock, sockets, private files, supervised tasks."""
