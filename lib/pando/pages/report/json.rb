# frozen_string_literal: true

require "json"
require "pando/pages/report/figures"

module Pando
  module Pages
    module Report
      # All figures, in bytes.
      #
      # @api private
      class Json
        WHOLE = %w[pid slot generation served minor_gcs major_gcs minor_gcs_after major_gcs_after private pss jit_code
                   jit_metadata].freeze

        def initialize(census)
          @census = census
          @figures = Figures.new(census)
        end

        # @return [String]
        def to_s
          "#{JSON.pretty_generate({ worker: facts, **sums, kinds_and_causes: kinds_and_causes, requests: requests })}\n"
        end

        private

        def facts = @figures.facts.to_h { |name, text| [name, value(name, text)] }

        def value(name, text)
          case name
          when *WHOLE then Integer(text, 10, exception: false)
          when "seconds" then Float(text, exception: false)
          else text
          end
        end

        def bytes(pages) = pages&.transform_values { |count| count * AddressSpace::PAGE }

        def sums
          { private: bytes(@census.private), copied: bytes(@census.copied), shared: bytes(@census.shared),
            causes: bytes(@census.causes) }
        end

        def kinds_and_causes
          @census.by_kind_and_cause.map do |(kind, cause), pages|
            { kind: kind, cause: cause, bytes: pages * AddressSpace::PAGE }
          end
        end

        def requests
          @figures.requests.map do |one|
            { number: one.number, request: one.name, causes: bytes(one.causes), kinds: bytes(one.kinds),
              faults: one.faults, compiled: one.compiled }
          end
        end
      end
    end
  end
end
