# frozen_string_literal: true

require "pando/fork_safety/libraries/entry"
require "pando/fork_safety/libraries/known"

module Pando
  module ForkSafety
    module Libraries
      # The gems that have loaded a C extension and that Pando knows nothing about. They may keep threads,
      # locks and connections where Ruby cannot see them.
      #
      # @api private
      module Native
        NOTE = "It has a C extension, and Pando does not know what that does around a fork."
        # These only compute: their compiled files import nothing that makes threads, sockets or epoll sets (nm -D,
        # in the versions of docs/libraries.md).
        HARMLESS = %w[
          bigdecimal cgi date digest erb etc fiddle io-console io-wait json msgpack nkf openssl prism psych puma racc
          rbs ripper stringio strscan websocket-driver zlib
        ].freeze
        private_constant :NOTE

        class << self
          # @return [Array<Entry>]
          def unknown
            names = loaded
            (names.keys - Known.names - HARMLESS - ["pando"]).sort.map do |name|
              Entry.new(name, names[name], :unknown, NOTE)
            end
          end

          # @return [Hash{String => Gem::Version}] the gems from whose directories an extension was loaded
          def loaded
            specifications = Gem.loaded_specs.each_value.to_h { |one| [one.full_name, one] }
            extensions.each_with_object({}) do |path, found|
              path.split("/").each do |part|
                specification = specifications[part] or next
                found[specification.name] = specification.version
              end
            end
          end

          private

          def extensions = $LOADED_FEATURES.select { |path| path.end_with?(".so") }
        end
      end
    end
  end
end
