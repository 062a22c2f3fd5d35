# frozen_string_literal: true

Rails.application.configure do
  folder = ENV.fetch("LAB_FOLDER")
  config.enable_reloading = false
  config.eager_load = true
  config.consider_all_requests_local = false
  config.action_controller.perform_caching = true
  config.cache_store = :memory_store, { size: 4 * 1024 * 1024 }
  config.log_tags = [:request_id]
  config.logger = ActiveSupport::TaggedLogging.logger(File.join(folder, "production.log"))
  config.log_level = :info
  config.paths["tmp"] = File.join(folder, "tmp") # the checkout stays as it is
  config.active_job.queue_adapter = :async
  config.action_mailer.delivery_method = :test
  config.active_support.report_deprecations = false
  config.active_record.dump_schema_after_migration = false
  config.active_storage.service = :local
  config.active_storage.variant_processor = :mini_magick
  config.active_storage.supported_image_processing_methods = %w[saver] # what Solidus asks of it
  config.assets.compile = false
  config.assets.unknown_asset_fallback = true # the pages name the assets, and nobody asks for one
end
