"""What people say of episodes: files of labels."""
