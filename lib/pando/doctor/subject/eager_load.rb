# frozen_string_literal: true

module Pando
  module Doctor
    module Subject
      # Loads a Rails application as production does. In the environment test Rails loads a file when it is first
      # needed: what is true of the tests only would be told of the application.
      #
      # Used in the stage's cold mold.
      #
      # @api private
      module EagerLoad
        ENVIRONMENT = "test"

        class << self
          # @param application [Rails::Application]
          # @return [void]
          def perform(application)
            return if application.config.eager_load

            ::ActiveSupport.run_load_hooks(:before_eager_load, application)
            ::Zeitwerk::Loader.eager_load_all
            application.config.eager_load_namespaces.each(&:eager_load!)
          rescue StandardError, ScriptError => e
            # Production will say so; the requests that the doctor sends may not need that file.
            warn "pando doctor: not all files could be loaded: #{e.message.lines.first&.chomp} (#{e.class})"
          end

          # @return [Rails::Application, nil] whose files are not all loaded in this environment
          def application
            return unless defined?(::Rails.application) && defined?(::Zeitwerk::Loader)

            ::Rails.application if ::Rails.env.to_s == ENVIRONMENT
          end
        end
      end
    end
  end
end
