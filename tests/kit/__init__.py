"""What several kinds of tests share: driving the real `oku` command and checking the account it ends with."""
