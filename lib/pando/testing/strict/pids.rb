# frozen_string_literal: true

module Pando
  module Testing
    class Strict
      # Constants that hold, or contain, the pid of a process which the run has left behind.
      #
      # @api private
      module Pids
        LONGEST = 200   # characters of a string that may be a name made of a pid
        SMALLEST = 1000 # below, a number in a string may be any number
        private_constant :LONGEST, :SMALLEST

        class << self
          # @param pids [Array<Integer>]
          # @return [Array<ForkSafety::Finding>]
          def findings(pids)
            quietly do
              ObjectSpace.each_object(Module).reject(&:singleton_class?).flat_map do |owner|
                stale(owner, pids).map { |name| finding(owner, name) }
              end
            end
          end

          private

          def stale(owner, pids)
            owner.constants(false).select do |name|
              !owner.autoload?(name, false) && stale?(name, owner.const_get(name, false), pids)
            rescue NameError, LoadError
              false # private since, or hooked
            end
          end

          def stale?(name, value, pids)
            case value
            when Integer then pids.include?(value) && name.match?(/pid|process/i)
            when String
              value.length <= LONGEST && value.scan(/\d+/).map(&:to_i).intersect?(pids.select { |pid| pid >= SMALLEST })
            end
          end

          def finding(owner, name)
            place = owner.const_source_location(name)
            full = owner.equal?(Object) ? name.to_s : "#{owner}::#{name}"
            ForkSafety::Finding.new(:pid_cached, subject: full, location: place&.first && place.join(":"),
                                                 message: "#{full} still names a process of before the refork.")
          end

          def quietly
            before = Warning[:deprecated]
            Warning[:deprecated] = false
            yield
          ensure
            Warning[:deprecated] = before
          end
        end
      end
    end
  end
end
