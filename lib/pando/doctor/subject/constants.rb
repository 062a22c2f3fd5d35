# frozen_string_literal: true

module Pando
  module Doctor
    module Subject
      # Constants that were made of a process's number: in a child it is wrong, and a constant
      # cannot be renewed. To be sure that a number is no mere coincidence, the line that makes
      # the constant must ask for a pid.
      #
      # @api private
      module Constants
        ASKS_FOR_A_PID = /\bpid\b|\$\$|\$PROCESS_ID/
        NAMES = Module.instance_method(:constants)
        GET = Module.instance_method(:const_get)
        AUTOLOAD = Module.instance_method(:autoload?)
        LOCATION = Module.instance_method(:const_source_location)
        NAME = Module.instance_method(:name)
        LONGEST = 500 # characters of a text that is looked into
        STATEMENT = 3 # lines

        module_function

        # @param pids [Array<Integer>] of other processes
        # @return [Array<Hash>] name, location, and whether it is a text with the number in it
        def holding(pids)
          return [] if pids.empty?

          verbose = $VERBOSE
          $VERBOSE = nil
          ObjectSpace.each_object(Module).flat_map { |one| within(one, pids) }.uniq
        ensure
          $VERBOSE = verbose
        end

        def within(mod, pids)
          return [] unless (owner = NAME.bind_call(mod))

          NAMES.bind_call(mod, false).filter_map do |name|
            next if AUTOLOAD.bind_call(mod, name, false)
            next unless made_of?(value = GET.bind_call(mod, name, false), pids)

            file, line = LOCATION.bind_call(mod, name, false)
            next unless file && asks_for_a_pid?(file, line)

            { name: owner == "Object" ? name.to_s : "#{owner}::#{name}", location: "#{file}:#{line}",
              text: value.is_a?(String) }
          rescue NameError, LoadError
            nil
          end
        end

        def made_of?(value, pids)
          case value
          when Integer then pids.include?(value)
          when String then value.size <= LONGEST && pids.any? { |pid| value.match?(/(?<!\d)#{pid}(?!\d)/) }
          else false
          end
        rescue ArgumentError, EncodingError
          false # bytes that are no text
        end

        def asks_for_a_pid?(file, line)
          before = [line - 1, 0].max # Ruby says line 0 where it knows none
          File.foreach(file).lazy.drop(before).first(STATEMENT).any? { |text| text.scrub.match?(ASKS_FOR_A_PID) }
        rescue SystemCallError
          false
        end
      end
    end
  end
end
