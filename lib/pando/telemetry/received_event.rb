# frozen_string_literal: true

require "pando/event"
require "pando/events/catalogue"

module Pando
  module Telemetry
    # Makes an event of what the monitor has told a client about one (the command `events` of the control protocol), so
    # that the client can write it as the log does.
    #
    # @api private
    module ReceivedEvent
      # No Symbol is made of what another process has sent.
      KEYS = [:pool, *Events::Catalogue.all.flat_map(&:keys)].uniq.to_h { |key| [key.to_s, key] }.freeze
      private_constant :KEYS

      # @param pairs [Hash{String => Object}] typed
      # @return [Event]
      def self.from(pairs)
        payload = pairs.except("event", "time").transform_keys { |key| KEYS.fetch(key, key) }
        Event.new(pairs["event"].to_s, payload, time: Time.at(pairs["time"].to_f))
      end
    end
  end
end
