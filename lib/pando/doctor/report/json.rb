# frozen_string_literal: true

require "json"

module Pando
  module Doctor
    class Report
      # For programs. docs/doctor.md has the fields.
      class Json
        def initialize(report)
          @report = report
        end

        # @return [String]
        def to_s = "#{JSON.pretty_generate(@report.to_h)}\n"
      end
    end
  end
end
