# frozen_string_literal: true

require "pando/doctor/lazy_state/places"

module Pando
  module Doctor
    module LazyState
      # Which methods the first request calls that none of the next ones does: what sets things up, rather than
      # serves. Methods written in C are not seen.
      #
      # @api private
      class Calls
        LATER = 2 # requests that the first one is compared with
        SHOWN = 100
        private_constant :LATER, :SHOWN

        # @param root [String] the application's folder
        def initialize(root)
          @places = Places.new(root)
        end

        # @return [Hash{Symbol => Object}]
        def observe
          first = traced { yield 1 }
          later = Array.new(LATER) { |at| traced { yield at + 2 } }
          known = later.flat_map(&:keys).to_h { |key| [key, true] }
          once = first.reject { |key, _| known[key] || @places.pando?(key.first) }
          { first_request: first.size, later_requests: known.size, only_first: once.size, methods: rows(once) }
        end

        private

        # @return [Hash{Array(String, Integer) => String}] names by place
        def traced(&request)
          seen = {}
          TracePoint.new(:call) do |point|
            seen[[point.path, point.lineno]] ||= [point.defined_class, point.method_id]
          end.enable(&request)
          seen
        end

        # The application's own ones first.
        def rows(once)
          once.sort_by { |(path, line), _| [@places.own?(path) ? 0 : 1, path, line] }.first(SHOWN)
              .map { |(path, line), (owner, name)| { place: "#{path}:#{line}", method: "#{title(owner)}##{name}" } }
        end

        def title(owner) = Module.instance_method(:inspect).bind_call(owner).scrub
      end
    end
  end
end
