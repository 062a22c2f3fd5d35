# frozen_string_literal: true

Rails.application.configure do
  folder = ENV.fetch("LAB_FOLDER")
  files = Pathname(ENV.fetch("LAB_FILES"))
  config.enable_reloading = false
  config.eager_load = true
  config.consider_all_requests_local = false
  config.action_controller.perform_caching = true
  config.cache_store = :memory_store, { size: 4 * 1024 * 1024 }
  config.log_tags = [:request_id]
  config.logger = ActiveSupport::TaggedLogging.logger(File.join(folder, "production.log"))
  config.log_level = :info
  config.paths["tmp"] = File.join(folder, "tmp") # the checkout stays as it is
  config.i18n.fallbacks = true
  config.active_job.queue_adapter = :inline # a request that publishes a page has published it when it is answered
  config.action_mailer.delivery_method = :test
  config.active_support.report_deprecations = false
  config.active_record.dump_schema_after_migration = false
  config.active_storage.service_configurations = { local: { service: "Disk", root: files.join("storage").to_s } }
  config.active_storage.service = :local
  config.active_storage.variant_processor = :mini_magick # makes the addresses of images; nobody asks for one
  config.assets.output_path = files.join("assets")
  config.assets.manifest_path = files.join("assets/.manifest.json")
end
