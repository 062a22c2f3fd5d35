# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Requests that change what the kernel keeps of their process. What a library does on its first use, and each
      # worker has, is a note.
      #
      # @api private
      class States < Check
        SEVERITIES = { "warning" => :warning, "note" => :note }.freeze
        private_constant :SEVERITIES

        def findings
          told = evidence.records(:changed_state).uniq { |one| one.values_at(:request, :key) }
          told.map do |one|
            finding(:changed_state, subject: "#{one[:request]}: #{one[:key]}", advice: one[:advice],
                                    severity: SEVERITIES[one[:severity]],
                                    message: "#{one[:request]} changes its process: #{one[:change]}")
          end
        end
      end
    end
  end
end
