# frozen_string_literal: true

require "pando"
require "pando/rack_handler"
require "rails/railtie"

module Pando
  # What Pando adds to a Rails app. Loaded with the gem wherever Rails is; in a console or a task it does nothing.
  class Railtie < ::Rails::Railtie
    if defined?(::Rails::Server)
      require "pando/rails_server"
      RailsServer.install(::Rails::Server)
    end

    config.after_initialize do
      if Pando.serving?
        Railtie.log_to_stdout if Railtie.log_to_stdout?
        Railtie.forward_events
      end
    end

    # Feature specs and Cucumber know nothing of Rails' system tests.
    config.after_initialize { require "pando/capybara" if defined?(::Capybara) }

    # Before Rails chooses Puma, and where Capybara is not loaded with the bundle.
    ActiveSupport.on_load(:action_dispatch_system_test_case) { require "pando/capybara" }

    class << self
      # @return [Boolean] whether Rails' log belongs on the terminal as well: in development, as `bin/rails server` does
      #   it, and where RAILS_LOG_TO_STDOUT is set
      # @api private
      def log_to_stdout?
        said = ENV.fetch(RackHandler::LOG_TO_STDOUT, nil)
        return said == "1" if said

        ::Rails.env.development? || !ENV["RAILS_LOG_TO_STDOUT"].to_s.empty?
      end

      # Unless the app's logger writes there already.
      # @api private
      def log_to_stdout
        logger = ::Rails.logger
        return if logger.nil? || ActiveSupport::Logger.logger_outputs_to?(logger, $stderr, $stdout)

        console = ActiveSupport::Logger.new($stdout)
        console.formatter = logger.formatter
        console.level = logger.level
        return logger.broadcast_to(console) if logger.respond_to?(:broadcast_to)

        logger.extend(ActiveSupport::Logger.broadcast(console)) # before Rails 7.1
      end

      # The events of this process become notifications: `request.timed_out` is named `request.timed_out.pando`.
      # @api private
      def forward_events
        Events.subscribe { |event| ActiveSupport::Notifications.instrument("#{event.name}.pando", event.payload) }
      end

      # @return [Boolean] whether the app has the health check that `rails new` puts at /up
      # @api private
      def health_check?
        found = ::Rails.application.routes.recognize_path("/up", method: :get)
        found[:controller] == "rails/health"
      rescue ActionController::RoutingError
        false
      end
    end
  end
end
