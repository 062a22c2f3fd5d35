# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    # Finds constants that hold a given pid, or a text with it. A number may be there by coincidence, so the doctor and
    # strict test mode each have a rule for what they report. Runs in the examined process.
    module PidConstants
      # `name` is the one within its module, `pids` are those in the value.
      Found = Struct.new(:name, :full_name, :file, :line, :value, :pids) do
        def text? = value.is_a?(String)
        def location = "#{file}:#{line}"
      end
      # Module's own methods, because a class may have redefined them.
      LOCATION, NAME = %i[const_source_location name].map { |name| Module.instance_method(name) }
      private_constant :LOCATION, :NAME

      class << self
        # @param pids [Array<Integer>]
        # @param longest [Integer] bytes; a longer text is not searched
        # @return [Array<Found>] those that have a line: one that was made in C, such as Ruby's own version, may contain
        #   any number
        def holding(pids, longest:)
          return [] if pids.empty?

          Libraries::Constants.quietly do
            ObjectSpace.each_object(Module).flat_map { |owner| within(owner, pids, longest) }
          end
        end

        private

        def within(owner, pids, longest)
          title = NAME.bind_call(owner) or return []
          found = []
          Libraries::Constants.each(owner) do |name, value|
            next if (held = pids_in(value, pids, longest)).empty?

            file, line = LOCATION.bind_call(owner, name, false)
            full_name = owner.equal?(Object) ? name.name : "#{title}::#{name}"
            found << Found.new(name, full_name, file, line, value, held) if line&.positive?
          end
          found
        end

        # Compares digits as text: 001001 is not a pid.
        def pids_in(value, pids, longest)
          case value
          when Integer then pids & [value]
          when String
            numbers = value.bytesize <= longest ? value.b.scan(/\d+/) : []
            pids.select { |pid| numbers.include?(pid.to_s) }
          else []
          end
        end
      end
    end
  end
end
