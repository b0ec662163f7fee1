"""What user code makes requests with: `Http`, its calls, responses, and the scope in which they count."""
