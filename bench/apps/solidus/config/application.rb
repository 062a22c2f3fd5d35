# frozen_string_literal: true

ENV["EXECJS_RUNTIME"] = "Disabled" # no assets are compiled

require "rails/all"

Bundler.require(*Rails.groups)

# A shop of Solidus (storefront, back office and API) with its sample data, as `rails new` and Solidus's installer leave
# it, but for what depends on where it runs.
module SolidusShop
  class Application < Rails::Application
    config.root = File.expand_path("..", __dir__)
    config.load_defaults Rails::VERSION::STRING.to_f
    config.secret_key_base = "0" * 64
    config.yjit = ENV["RUBY_YJIT_ENABLE"] == "1"
  end
end
