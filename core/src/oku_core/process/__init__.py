"""What every process of Oku needs: a clock, sockets, private files, tasks that keep going."""
