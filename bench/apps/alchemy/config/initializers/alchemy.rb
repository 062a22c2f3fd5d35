# frozen_string_literal: true

# As the installers write it, but a session that the database was made with never ends.

Alchemy.configure do |config|
  config.storage_adapter = "active_storage"
  config.auto_logout_time = 100 * 365 * 24 * 60 # minutes
end

Devise.setup do |config|
  require "devise/orm/active_record"
  config.parent_controller = "Alchemy::BaseController"
  config.mailer = "Alchemy::Notifications"
  config.authentication_keys = [:login]
  config.timeout_in = Alchemy.config.auto_logout_time.minutes
  config.sign_out_via = :delete
end

# Active Record gives a child connections of its own; that the gem closes the inherited ones is as it should be.
SQLite3::ForkSafety.suppress_warnings! if defined?(SQLite3::ForkSafety)
