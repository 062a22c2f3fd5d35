# frozen_string_literal: true

# Loaded by the self-check of each forked child, which has nothing else in mind than to load a file.
