# frozen_string_literal: true

module Pando
  module Doctor
    module Subject
      # The routes of a Rails application that need nothing but to be asked for.
      #
      # @api private
      module RailsRoutes
        FORMAT = "(.:format)"

        # @param application [Rails::Application]
        # @return [Array<String>] paths that GET answers without parameters
        def self.paths(application)
          application.routes.routes.filter_map do |route|
            next if route.internal || !route.verb.to_s.include?("GET") || route.required_parts.any?

            path = route.path.spec.to_s.delete_suffix(FORMAT)
            path unless path.match?(/[(:*]/)
          end.uniq
        end
      end
    end
  end
end
