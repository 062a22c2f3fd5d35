# frozen_string_literal: true

module Pando
  module Cluster
    # Where the threads of this process stand, in reports to the monitor. Runs in a signal handler of a worker, a mold
    # or a service, so it takes no lock.
    module Stacks
      # Bytes of all together, and of a line.
      LIMIT = 24_000
      LINE = 400

      class << self
        # @param handler [String] the file whose frames are the signal handler's
        # @return [Array<String>] texts for reports, the last one empty
        def reports(handler)
          handlers = [__FILE__, handler]
          parts = [+""]
          lines(handlers).each do |line|
            line = "#{line.b[0, LINE - 1]}\n"
            parts << +"" if parts.last.bytesize + line.bytesize > Message::TEXT_BYTES
            parts.last << line
            break if parts.sum(&:bytesize) > LIMIT
          end
          [*parts, ""]
        end

        private

        # The main thread first: most workers serve with it.
        def lines(handlers)
          Thread.list.sort_by { |thread| thread == Thread.main ? 0 : 1 }.flat_map do |thread|
            frames = thread.backtrace.to_a
            frames = frames.drop_while { |frame| frame.start_with?(*handlers) } if thread == Thread.current
            ["#{title(thread)}:", *frames.map { |frame| "    #{frame}" }]
          end
        end

        def title(thread)
          return "main thread" if thread == Thread.main

          ["thread", thread.name&.inspect, "(#{thread.status || "dead"})"].compact.join(" ")
        end
      end
    end
  end
end
