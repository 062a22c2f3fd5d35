# frozen_string_literal: true

module Pando
  module Cluster
    class Control
      # The monitor's last events, as records of the protocol. A client that follows them and reads slowly, or a service
      # that is being replaced, goes on here where it was. Owned by Control, in the monitor.
      class RecentEvents
        KEPT = 256

        # `pairs` are those of the record.
        Entry = Struct.new(:number, :name, :pairs)

        # @return [Integer] the number of the last event
        attr_reader :last

        # Numbers go on from one image of the monitor to the next: no event comes each microsecond.
        def initialize
          @entries = []
          @began = @last = (Time.now.to_f * 1_000_000).to_i
        end

        def add(event)
          @last += 1
          payload = event.payload.except(:backtrace, :event, :time, :number)
          @entries << Entry.new(@last, event.name, { event: event.name, time: format("%.3f", event.time.to_f),
                                                     **payload.transform_values { |value| text(value) } })
          @entries.shift if @entries.size > KEPT
        end

        # @return [Entry, nil] the first event that is kept and comes after the one with this number; nil: none
        def after(number)
          first = @entries.first&.number or return
          @entries[[number + 1 - first, 0].max]
        end

        # @return [Integer] how many came between the two and are no longer kept; what a former image of the monitor has
        #   emitted does not count
        def missed(number, entry) = [entry.number - [number, @began].max - 1, 0].max

        private

        # As the log writes it.
        def text(value)
          case value
          when Float then value.round(6)
          when Array then value.join(",")
          when Exception then "#{value.class}: #{value.message}"
          else value
          end
        end
      end
    end
  end
end
