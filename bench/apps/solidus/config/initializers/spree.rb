# frozen_string_literal: true

# As Solidus's installer writes it.

Spree.load_defaults Spree.solidus_version

Spree.config do |config|
  config.currency = "USD"
  config.image_attachment_module = "Spree::Image::ActiveStorageAttachment"
  config.taxon_attachment_module = "Spree::Taxon::ActiveStorageAttachment"
end

Spree::Frontend::Config.configure { |config| config.locale = "en" }
Spree::Backend::Config.configure { |config| config.locale = "en" }
Spree::Api::Config.configure { |config| config.requires_authentication = true }

Spree.user_class = "Spree::LegacyUser"
