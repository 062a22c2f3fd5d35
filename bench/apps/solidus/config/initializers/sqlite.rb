# frozen_string_literal: true

# Active Record gives a child connections of its own; that the gem closes the inherited ones is as it should be.
SQLite3::ForkSafety.suppress_warnings! if defined?(SQLite3::ForkSafety)
