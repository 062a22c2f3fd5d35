# frozen_string_literal: true

require "pando/config/type"
require "pando/config/listen"

module Pando
  class Config
    module Types
      # An address to listen on, a Config::Listen.
      #
      # @api private
      class ListenOn < Type
        def cast(value, **options)
          listen = Listen.parse(value, **options)
          wrong = options.keys.find { |name| !listen.takes?(name) }
          wrong ? raise(Invalid, "takes no option #{wrong}: with #{listen}.") : listen
        rescue ArgumentError => e
          raise Invalid, "must be #{expects}, but is #{value.inspect}: #{e.message}."
        end

        def expects
          "HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd"
        end

        def write(value)
          [value.to_s.inspect, *value.options.map { |name, option| "#{name}: #{written(name, option)}" }].join(", ")
        end

        def export(value)
          { "address" => value.to_s, **value.options.transform_keys(&:name) }
        end

        def text(value)
          value.to_s
        end

        private

        def written(name, option)
          return "false" if option.nil?

          %i[mode umask].include?(name) ? format("0%o", option) : option.inspect
        end
      end

      # An address of the admin process, a Config::Listen. A bare port is not open to other machines.
      #
      # @api private
      class AdminOn < ListenOn
        HOST = "127.0.0.1"

        def cast(value, **options)
          address = value.to_s.match?(/\A\d+\z/) ? "#{HOST}:#{value}" : value
          super(address, **options).tap { |listen| invalid(value) if listen.kind == :systemd }
        end

        def expects
          "HOST:PORT, PORT, [v6]:PORT, unix:PATH or unix:@ABSTRACT"
        end
      end

      # The permission bits of a unix socket's file: 0660, or "0660".
      #
      # @api private
      class FileMode < Type
        def cast(value, **)
          bits = value.is_a?(String) && value.match?(/\A[0-7]{1,4}\z/) ? value.oct : value
          bits.is_a?(Integer) && (0..0o777).cover?(bits) ? bits : invalid(value, hint(value))
        end

        def expects
          "permission bits from 0 to 0777"
        end

        # Ruby reads a number without a leading zero as decimal.
        def hint(value) = (" Write 0#{value}." if value.to_s.match?(/\A[0-7]{3}\z/))

        def write(value)
          value.nil? ? "none" : format("0%o", value)
        end

        def text(value)
          format("%o", value)
        end
      end
    end
  end
end
