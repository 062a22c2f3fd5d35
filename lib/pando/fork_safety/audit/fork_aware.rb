# frozen_string_literal: true

module Pando
  module ForkSafety
    module Audit
      # Libraries whose objects are safe to inherit. On its next use, such a library notices the fork and opens a new
      # connection. Until then it keeps the inherited copy and leaves it alone. Or it reads a file by offset, with
      # pread(2), so that the position does not matter.
      #
      # @api private
      module ForkAware
        # Class => library. Each compares pids before each command.
        HOLDERS = {
          "RedisClient" => "redis-client",
          "Dalli::Protocol::ConnectionManager" => "dalli",
          "Dalli::Protocol::Base" => "dalli"
        }.freeze
        # Class => a constant of the versions that read by offset.
        READERS = { "MiniMime::Db::RandomAccessDb" => "MiniMime::Db::PReadFile" }.freeze
        # References from the holder to its IO: client, connection, buffered IO, TLS socket, IO.
        DEPTH = 5
        # The most objects to look at for one holder.
        LIMIT = 300
        private_constant :HOLDERS, :READERS, :DEPTH, :LIMIT

        class << self
          # @param ios [Array<IO>] the objects of one descriptor
          # @return [String, nil] the library that holds one of them
          def library(ios)
            return if ios.empty?

            holders.find { |holder, _| reaches?(holder, ios) }&.last
          end

          # @param ios [Array<IO>] the objects of one descriptor
          # @return [Boolean] whether one of them is a file that its library reads by offset
          def reads_by_offset?(ios)
            readers = READERS.filter_map { |name, mark| loaded(name) if loaded(mark) }
            ios.any? && readers.any? { |one| ObjectSpace.each_object(one).any? { |holder| reaches?(holder, ios) } }
          end

          private

          def holders
            classes = HOLDERS.filter_map { |name, library| [loaded(name), library] if loaded(name) }
            classes.flat_map { |one, library| ObjectSpace.each_object(one).map { |holder| [holder, library] } }
          end

          # Triggers no autoload.
          def loaded(name)
            name.split("::").inject(Object) do |scope, part|
              return nil if scope.autoload?(part, false) || !scope.const_defined?(part, false)

              scope.const_get(part, false)
            end
          end

          def reaches?(holder, ios)
            seen = {}.compare_by_identity
            layer = [holder]
            DEPTH.times do
              layer = layer.flat_map { |one| fields(one) }.reject { |one| seen[one] }
              layer.each { |one| seen[one] = true }
              return true if ios.any? { |io| seen[io] }
              return false if seen.size > LIMIT
            end
            false
          end

          FIELDS = Object.instance_method(:instance_variables)
          FIELD = Object.instance_method(:instance_variable_get)
          private_constant :FIELDS, :FIELD

          def fields(object)
            return [] if object.is_a?(Module) || object.is_a?(BasicObject) == false

            FIELDS.bind_call(object).map { |name| FIELD.bind_call(object, name) }.select { |one| traversable?(one) }
          rescue TypeError
            []
          end

          def traversable?(one)
            case one
            when nil, true, false, Symbol, Numeric, String, Module, Proc then false
            else true
            end
          end
        end
      end
    end
  end
end
