# frozen_string_literal: true

require "pando/fork_safety/libraries/active_record_pools"
require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/libraries/library"

module Pando
  module ForkSafety
    module Libraries
      # The table of libraries. Its rows are declared in known/*.rb, grouped by purpose; {Library} has the DSL.
      # Pando prepares libraries for a fork in the order of the rows. So the row of a library that manages
      # connections comes before the rows of its drivers.
      module Known
        # Environment variables that libraries read when they start.
        ENVIRONMENT = { "GRPC_ENABLE_FORK_SUPPORT" => "1" }.freeze

        @rows = {}

        class << self
          def all = @rows.values

          # @return [Array<Library>] the rows of libraries that are loaded now
          def loaded = all.select(&:loaded?)

          def loaded?(name) = library(name).loaded?

          # @raise [KeyError] there is no such row
          def library(name) = @rows.fetch(name)

          def names = @rows.keys

          # Adds rows: the block calls {describe}.
          def define(&) = instance_exec(&)

          # Adds one row.
          #
          # @param constant [String] defined once the library is loaded
          # @param tested [Boolean] whether a test runs the real gem
          def describe(name, constant:, tested: false, &declaration)
            raise ArgumentError, "#{name} has a row already" if @rows.key?(name)

            @rows[name] = Library.new(name, constant, tested: tested, &declaration)
          end
        end
      end

      # The gems that have loaded a C extension and that Pando knows nothing about. They may keep threads,
      # locks and connections where Ruby cannot see them.
      module Native
        NOTE = "It has a C extension, and Pando does not know what that does around a fork."
        # These only compute: their compiled files import nothing that makes threads, sockets or epoll sets (nm -D,
        # in the versions of docs/libraries.md).
        HARMLESS = %w[
          bigdecimal cgi date digest erb etc fiddle io-console io-wait json msgpack nkf openssl prism psych puma racc
          rbs ripper stringio strscan zlib
        ].freeze
        private_constant :NOTE

        class << self
          def unknown
            names = loaded
            (names.keys - Known.names - HARMLESS - ["pando"]).sort.map do |name|
              Entry.new(name, names[name], :unknown, NOTE)
            end
          end

          # @return [Hash{String => Gem::Version}] the gems from whose directories an extension was loaded
          def loaded
            specifications = Gem.loaded_specs.each_value.to_h { |one| [one.full_name, one] }
            extensions = $LOADED_FEATURES.select { |path| path.end_with?(".so") }
            extensions.each_with_object({}) do |path, found|
              path.split("/").each do |part|
                specification = specifications[part] or next
                found[specification.name] = specification.version
              end
            end
          end
        end
      end
    end
  end
end

%w[data clients telemetry other].each do |group|
  require "pando/fork_safety/libraries/known/#{group}"
end
