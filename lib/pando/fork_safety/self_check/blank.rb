# frozen_string_literal: true

# The self-check of each forked child loads this file, only to test loading.
