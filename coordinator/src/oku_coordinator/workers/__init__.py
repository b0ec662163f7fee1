"""The workers as the coordinator knows them: who lives, how often they speak, and who is not heard."""
