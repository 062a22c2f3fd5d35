# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Descriptors that become more with each round of the same requests.
      #
      # @api private
      class Growth < Check
        def findings
          totals = evidence.counts.map { |fact| fact[:count] }
          return [] unless totals.size >= 3 && growing?(totals)

          message = "a worker has #{totals[-1] - totals[-2]} more descriptors open after each round of requests"
          [finding(:growing_descriptors, subject: "descriptors of a worker", location: location, severity: :error,
                                         message: message, details: { counts: totals })]
        end

        private

        def growing?(numbers) = numbers.each_cons(2).all? { |before, after| after > before }

        # The line with the most IOs that became more.
        def location
          lines = evidence.counts.map { |fact| fact[:lines].transform_keys(&:to_s) }
          grown = lines.last.keys.select { |line| growing?(lines.map { |one| one.fetch(line, 0) }) && line != "" }
          grown.max_by { |line| lines.last[line] } || evidence.origin(:descriptor) { true }
        end
      end
    end
  end
end
