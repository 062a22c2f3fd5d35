# frozen_string_literal: true

module Pando
  module Doctor
    module Subject
      # The doctor's knowledge of Rails. Used in the stage's molds.
      module RailsApp
        LAZY_ENVIRONMENT = "test"
        FORMAT = "(.:format)"

        class << self
          # @return [Array<String>] paths that GET answers without parameters
          def routes(application)
            application.routes.routes.filter_map do |route|
              next if route.internal || !route.verb.to_s.include?("GET") || route.required_parts.any?

              path = route.path.spec.to_s.delete_suffix(FORMAT)
              path unless path.match?(/[(:*]/)
            end.uniq
          end

          # Loads all files, as production does. In the environment test Rails loads a file when it is first needed, and
          # what is true of tests only would be reported of the application.
          def eager_load
            application = (::Rails.application if defined?(::Rails.application) && defined?(::Zeitwerk::Loader))
            return if application.nil? || ::Rails.env.to_s != LAZY_ENVIRONMENT || application.config.eager_load

            ::ActiveSupport.run_load_hooks(:before_eager_load, application)
            ::Zeitwerk::Loader.eager_load_all
            application.config.eager_load_namespaces.each(&:eager_load!)
          rescue StandardError, ScriptError => e
            # Production will report it; the doctor's requests may not need that file.
            warn "pando doctor: not all files could be loaded: #{e.message.lines.first&.chomp} (#{e.class})"
          end
        end
      end
    end
  end
end
