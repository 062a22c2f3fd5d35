# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A list of networks: an Array of addresses, prefixes and a few words. A
      # flag separates them by commas; false is an empty list.
      #
      # @api private
      class Networks < Type
        WORDS = %w[loopback private unix].freeze
        NOBODY = [false, "off", "false", "none"].freeze

        def cast(value, **)
          return [].freeze if NOBODY.include?(value)

          names = value.is_a?(String) ? value.split(",") : [*value]
          invalid(value) if names.empty?
          names.map { |name| network(name) || invalid(value, Suggestion.for(name.to_s, WORDS)) }.uniq.freeze
        end

        def expects
          "a list of addresses, networks (10.0.0.0/8) and the words #{WORDS[0..-2].join(", ")} and #{WORDS.last}"
        end

        def write(value)
          value.empty? ? "false" : value.inspect
        end

        def export(value)
          value.empty? ? false : value
        end

        private

        # @return [String, nil]
        def network(name)
          name = name.to_s.strip
          return name.freeze if WORDS.include?(name)

          address(name) if name.match?(/[.:]/)
        end

        # Required on demand: the monitor needs it only if the setting names addresses.
        def address(name)
          require "ipaddr"
          IPAddr.new(name)
          name.freeze
        rescue IPAddr::Error
          nil
        end
      end
    end
  end
end
