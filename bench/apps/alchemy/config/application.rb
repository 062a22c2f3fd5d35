# frozen_string_literal: true

require "rails/all"

Bundler.require(*Rails.groups)

# A site of Alchemy CMS in two languages, as `rails new` and the installers of Alchemy and Alchemy-Devise leave it, but
# for what depends on where it runs.
module AlchemySite
  class Application < Rails::Application
    config.root = File.expand_path("..", __dir__)
    config.load_defaults Rails::VERSION::STRING.to_f
    config.secret_key_base = "0" * 64
    config.i18n.available_locales = %i[en de]
    config.yjit = ENV["RUBY_YJIT_ENABLE"] == "1"
  end
end
