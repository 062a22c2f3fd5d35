# frozen_string_literal: true

require "pando"
require "pando/rack_handler"
require "rails/railtie"

module Pando
  # What Pando adds to a Rails app. Loaded with the gem in every Rails process; in a console or a task it does nothing.
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

    # Feature specs and Cucumber do not use Rails' system tests.
    config.after_initialize { require "pando/capybara" if defined?(::Capybara) }

    # Runs before Rails chooses Puma, and where Capybara is not loaded with the bundle.
    ActiveSupport.on_load(:action_dispatch_system_test_case) { require "pando/capybara" }

    class << self
      # @!group Pando's own: no part of the public API

      # @return [Boolean] whether to write Rails' log to the terminal as well: in development, as `bin/rails server`
      #   does, and if RAILS_LOG_TO_STDOUT is set
      def log_to_stdout?
        said = ENV.fetch(RackHandler::LOG_TO_STDOUT, nil)
        return said == "1" if said

        ::Rails.env.development? || !ENV["RAILS_LOG_TO_STDOUT"].to_s.empty?
      end

      # Does nothing if the app's logger already writes there.
      def log_to_stdout
        logger = ::Rails.logger
        return if logger.nil? || ActiveSupport::Logger.logger_outputs_to?(logger, $stderr, $stdout)

        console = ActiveSupport::Logger.new($stdout)
        console.formatter = logger.formatter
        console.level = logger.level
        return logger.broadcast_to(console) if logger.respond_to?(:broadcast_to)

        logger.extend(ActiveSupport::Logger.broadcast(console)) # before Rails 7.1
      end

      # Publishes the events of this process as notifications: `request.timed_out` is named `request.timed_out.pando`.
      def forward_events
        Events.subscribe do |event|
          ActiveSupport::Notifications.instrument("#{event.name}.pando", event.payload.dup) # subscribers may add to it
        end
      end

      # @return [Boolean] whether the app has the health check that `rails new` puts at /up
      def health_check?
        found = ::Rails.application.routes.recognize_path("/up", method: :get)
        found[:controller] == "rails/health"
      rescue ActionController::RoutingError
        false
      rescue StandardError => e # a constraint may need what only a request has
        report_unknown_health_check(e)
        false
      end

      private

      def report_unknown_health_check(error)
        Events.emit("setting.ignored", name: "self_test",
                                       reason: "the app's routes cannot be asked for /up without a request: " \
                                               "#{error.message.lines.first&.chomp} (#{error.class})",
                                       advice: "write self_test \"GET /up\" if /up is Rails' health check, or " \
                                               "self_test false")
      end
    end
  end
end
