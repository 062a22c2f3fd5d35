# frozen_string_literal: true

require "pando/errors"
require "pando/events"

module Pando
  module Events
    # Every event Pando emits: its name, how grave it is, what its payload holds
    # and one line of help. docs/events.md shows this table (a test compares
    # them), the log takes the level from it, and the config file's `on` is
    # checked against it. Read in every process, changed in none.
    module Catalogue
      # One row. `keys` are the payload's keys; any may be absent where it makes
      # no sense. `level` is :info, :warn or :error. `failed`: a `status` other than 0 makes it an error.
      Known = Struct.new(:name, :level, :keys, :help, :failed)

      @known = {}

      class << self
        # @api private
        def define(name, level, keys, help, failed: false)
          @known[name] = Known.new(name.freeze, level, keys.freeze, help.freeze, failed).freeze
        end

        # @return [Array<Known>] in the order of the docs
        def all
          @known.values
        end

        # @return [Array<String>]
        def names
          @known.keys
        end

        # @param name [String]
        # @return [Boolean]
        def known?(name)
          @known.key?(name)
        end

        # @param name [String]
        # @return [Symbol] :info for a name that is not in the table
        def level(name)
          @known[name]&.level || :info
        end

        # @param event [Event]
        # @return [Symbol] that of its name, unless what it tells is worse, or was told before (`told`)
        def level_of(event)
          return :info if event[:told]

          @known[event.name]&.failed && event[:status].to_i.positive? ? :error : level(event.name)
        end

        # @param name [String, Symbol] as Events.subscribe takes it
        # @return [String] the event's name
        # @raise [ConfigError] for an unknown one, with the nearest right name
        def check(name)
          wanted = Events.name_of(name)
          return wanted if known?(wanted)

          near = nearest(wanted)
          raise ConfigError, "unknown event #{wanted.inspect}#{near && "; did you mean #{near.inspect}?"}"
        end

        private

        def nearest(name)
          defined?(DidYouMean::SpellChecker) && DidYouMean::SpellChecker.new(dictionary: names).correct(name).first
        end
      end
    end
  end
end

require "pando/events/catalogue/table"
