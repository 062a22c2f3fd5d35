# frozen_string_literal: true

module Pando
  class Config
    # Units for numbers in a config file: `512.mb`, `1.5.gb`,
    # `500.milliseconds`, `2.minutes`, `80.percent`. A kilobyte is 1024 bytes.
    #
    # A refinement that is active only in the config file: other code, such as
    # the application's, sees no new method on Integer.
    #
    # @api private
    module Units
      BYTES = { kb: 1024, mb: 1024**2, gb: 1024**3 }.freeze
      SECONDS = { milliseconds: 0.001, seconds: 1, minutes: 60, hours: 3600 }.freeze

      [Integer, Float].each do |number|
        refine(number) do
          BYTES.each { |name, factor| define_method(name) { (self * factor).round } }
          define_method(:percent) { "#{self}%" }
          SECONDS.each { |name, factor| define_method(name) { self * factor } }
        end
      end
    end

    module Types
      # A number with decimals, in all forms of Float#to_s that a setting's value has.
      DECIMAL = /\d{1,9}(?:\.\d{1,20})?(?:e-\d{1,3})?/

      # An Integer within a range. A subclass implements #number, which reads it and returns nil for anything else.
      class Ranged < Type
        attr_reader :range

        # @param range [Range<Integer>]
        def initialize(range)
          super()
          @range = range
        end

        def cast(value, **)
          number = number(value)
          number && @range.cover?(number) ? number : invalid(value)
        end

        # @return [Object] the value, or if it is a number out of range the nearest one in it
        def nearest(value) = number(value)&.clamp(@range) || value
      end

      # A whole number in a range.
      class Whole < Ranged
        def expects
          return "a whole number, #{@range.begin} or more" unless @range.end

          "a whole number from #{@range.begin} to #{@range.end}"
        end

        private

        def number(value)
          case value
          when Integer then value
          when /\A-?\d(?:_?\d){0,17}\z/ then value.to_i
          end
        end
      end

      # A whole number, or :auto: Pando chooses.
      class WholeOrAuto < Whole
        def cast(value, **)
          return :auto if [:auto, "auto"].include?(value)

          super
        end

        def expects = "#{super}, or auto"
      end

      # A number of workers. `:auto` is one for each CPU.
      class Workers < WholeOrAuto
        def resolved(value, _directory) = value == :auto ? CPUs.count : value
      end

      # A size in bytes, an Integer. A String may also be "64KB", "1.5MB" or "2GB".
      # A kilobyte is 1024 bytes, as in `64.kb`.
      class Bytes < Ranged
        FACTORS = { "" => 1, "k" => 1024, "m" => 1024**2, "g" => 1024**3 }.freeze
        TEXT = /\A(\d{1,19}(?:\.\d{1,9})?) ?(k|m|g|)(?:i?b)?\z/i

        def unit = "bytes"

        def expects
          limits = @range.end ? "from #{write(@range.begin)} to #{write(@range.end)}" : "#{write(@range.begin)} or more"
          "a number of bytes, #{limits}"
        end

        def write(value)
          unit, factor = Units::BYTES.reverse_each.find { |_, bytes| (value % bytes).zero? && value.positive? }
          unit ? "#{value / factor}.#{unit}" : value.to_s
        end

        private

        def number(value)
          case value
          when Integer then value
          when TEXT then (Regexp.last_match(1).to_r * FACTORS.fetch(Regexp.last_match(2).downcase)).round
          end
        end
      end

      # A size in bytes, or a share of the available memory: "80%", `80.percent`.
      class ShareOfMemory < Bytes
        SHARE = /\A(\d{1,3}(?:\.\d{1,9})?) ?%\z/

        # @param value [Integer, String] as #cast returned it
        # @param available [Integer] bytes
        # @return [Integer] bytes
        def self.of(value, available)
          value.is_a?(Integer) ? value : (available * value[SHARE, 1].to_r / 100).to_i
        end

        def cast(value, **)
          return super unless value.is_a?(String) && SHARE.match?(value)

          (0r..100r).cover?(value[SHARE, 1].to_r) && value.to_f.positive? ? value.delete(" ") : invalid(value)
        end

        def expects = "#{super}, or a share of the memory such as 80.percent"

        def resolved(value, _directory)
          return value if value.is_a?(Integer)

          available = Sys::Memory.limit
          available or raise ArgumentError, "the size of the memory is not known here: write a number of bytes"
          ShareOfMemory.of(value, available)
        end

        def write(value) = value.is_a?(Integer) ? super : "#{value.delete_suffix("%")}.percent"
      end

      # A part of all: more than 0, at most 1, a Float.
      class Share < Type
        TEXT = /\A(?:\.\d{1,9}|#{DECIMAL})\z/

        def cast(value, **)
          share = value.is_a?(String) && TEXT.match?(value) ? value.to_f : value
          invalid(value) unless share.is_a?(Numeric) && share.real? && share.positive? && share <= 1
          share.to_f
        end

        def expects = "a number greater than 0 and at most 1"
      end

      # A duration in seconds, a Float. A String may also be "500ms", "30s", "2m" or "1h".
      class Seconds < Type
        FACTORS = { "ms" => 0.001, "s" => 1, "" => 1, "m" => 60, "h" => 3600 }.freeze
        TEXT = /\A(#{DECIMAL}) ?(ms|s|m|h|)\z/

        # The longest duration. Deadlines are stored in nanoseconds in 64 bits, which a year is far from filling.
        YEAR = 365.0 * 24 * 3600

        # @param least [Numeric, nil] nil: anything above 0
        def initialize(least: nil)
          super()
          @least = least
        end

        def cast(value, **)
          seconds = seconds(value)
          seconds && fits?(seconds) ? seconds : invalid(value)
        end

        def unit = "seconds"

        def expects
          "a number of seconds#{@least ? " from #{@least} to a year" : ", more than 0 and at most a year"}"
        end

        def write(value) = value == value.to_i ? value.to_i.to_s : value.to_s

        private

        def seconds(value)
          case value
          when Integer, Float, Rational then value.to_f
          when TEXT then Regexp.last_match(1).to_f * FACTORS.fetch(Regexp.last_match(2))
          end
        end

        # False for NaN too, because every comparison with it is false.
        def fits?(seconds)
          seconds <= YEAR && (@least ? seconds >= @least : seconds.positive?)
        end
      end
    end
  end
end
