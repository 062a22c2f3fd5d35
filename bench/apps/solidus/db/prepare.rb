# frozen_string_literal: true

# Makes the database: Solidus's tables, its seed and sample data, and a shop's worth of rows, the same wherever it runs.
# Images are resized now, so that no page has to.

require_relative "../config/environment"
require_relative "catalogue"
require_relative "customers"

ActiveJob::Base.queue_adapter = :inline

ActiveRecord::Migration.verbose = false
Rails.application.migration_railties.each do |railtie| # in the order in which an installer copies them
  ActiveRecord::MigrationContext.new(railtie.paths["db/migrate"].existent).migrate if railtie.respond_to?(:paths)
end
ActiveRecord::Base.descendants.each(&:reset_column_information)

Spree::Core::Engine.load_seed
SpreeSample::Engine.load_samples

random = Random.new(7)
Catalogue.new(random).fill
Customers.new(random).fill
Spree::Image.find_each do |image|
  Spree::Config.product_image_styles.each_key { |style| image.attachment.variant(style) }
end
ActiveRecord::Base.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
