# frozen_string_literal: true

require "pando/errors"
require "pando/events"
require "pando/suggestion"

module Pando
  module Events
    # Every event that Pando emits: its name, its level and its payload. docs/events.md shows this table and explains
    # each event (a test compares them), the log takes the level from it, and the `on` of the config file is checked
    # against it. Every process reads it, and none changes it.
    module Catalogue
      # One row. `keys` are the payload's keys; any of them may be absent where it does not apply. `level` is :info,
      # :warn or :error. `failed`: a `status` other than 0 makes it an error.
      Known = Struct.new(:name, :level, :keys, :failed)

      # Keys whose values are texts, even if they look like numbers.
      TEXTS = %w[event environment id library location method name node path queue reason request subject
                 version].freeze

      @known = {}

      class << self
        # @api private
        def define(name, level, keys, failed: false)
          @known[name] = Known.new(name.freeze, level, keys.freeze, failed).freeze
        end

        # @return [Array<Known>] in the order of the docs
        def all = @known.values

        # @return [Array<String>]
        def names = @known.keys

        # @param name [String]
        # @return [Boolean]
        def known?(name) = @known.key?(name)

        # @param name [String]
        # @return [Symbol] :info for a name that is not in the table
        def level(name) = @known[name]&.level || :info

        # @param event [Event]
        # @return [Symbol] the level of its name, unless this event is worse, or was reported before (`told`)
        def level_of(event)
          return :info if event[:told]

          @known[event.name]&.failed && event[:status].to_i.positive? ? :error : level(event.name)
        end

        # @param name [String, Symbol] as Events.subscribe takes it
        # @return [String] the event's name
        # @raise [ConfigError] for an unknown name; the message suggests the most similar one
        def check(name)
          wanted = Events.name_of(name)
          return wanted if known?(wanted)

          near = Suggestion.nearest(wanted, names)
          raise ConfigError, "unknown event #{wanted.inspect}#{near && "; did you mean #{near.inspect}?"}"
        end

        # Makes an event of what the monitor has told a client about one (the command `events` of the control protocol).
        #
        # @api private
        # @param pairs [Hash{String => Object}] typed
        # @return [Event]
        def received(pairs)
          # No Symbol is made of what another process has sent.
          @keys ||= [:pool, *all.flat_map(&:keys)].uniq.to_h { |key| [key.to_s, key] }.freeze
          payload = pairs.except("event", "time").transform_keys { |key| @keys.fetch(key, key) }
          Event.new(pairs["event"].to_s, payload, time: Time.at(pairs["time"].to_f))
        end
      end
    end
  end
end

require "pando/events/catalogue/table"
