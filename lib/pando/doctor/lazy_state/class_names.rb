# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # What the objects of a dump are called, which knows their classes by address only.
      #
      # @api private
      class ClassNames
        # Objects that are classes, and those without one.
        TYPES = { "CLASS" => "Class", "MODULE" => "Module", "ICLASS" => "(included module)" }.freeze
        INSPECT = Module.instance_method(:inspect)
        SINGLETON = Module.instance_method(:singleton_class?)
        private_constant :TYPES, :INSPECT, :SINGLETON

        def initialize
          @classes = {}
          @names = {}
          ObjectSpace.each_object(Module) { |one| @classes[Origins.address(one)] = one }
        end

        # @param line [String] of a dump
        # @return [String, Symbol] a Symbol for an object of the VM
        def name(line)
          type = line[/"type":"(\w+)"/, 1]
          return line[/"imemo_type":"(\w+)"/, 1].to_s.to_sym if type == "IMEMO"

          TYPES[type] || name_at(line[/"class":"0x(\h+)"/, 1].to_s.to_i(16)) || "(internal #{type.downcase})"
        end

        private

        def name_at(address)
          @names[address] ||= (known = @classes[address]) && name_of(known)
        end

        # The same from run to run: no address in it.
        def name_of(known)
          known = known.superclass while SINGLETON.bind_call(known) && known.superclass
          name = INSPECT.bind_call(known).scrub
          return name unless name.include?("0x")

          "(anonymous #{known.is_a?(Class) ? name_of(known.superclass) : "module"})"
        end
      end
    end
  end
end
