# frozen_string_literal: true

require "pando/doctor/lazy_state/zeitwerk_files"

module Pando
  module Doctor
    module LazyState
      # The constants that were waiting for their first use (Module#autoload, which Zeitwerk uses too), by the
      # file that defines them.
      #
      # @api private
      class Autoloads
        CONSTANTS = Module.instance_method(:constants)
        PENDING = Module.instance_method(:autoload?)
        NAME = Module.instance_method(:name)
        private_constant :CONSTANTS, :PENDING, :NAME

        def initialize
          @by_base = Hash.new { |all, base| all[base] = [] }
          ObjectSpace.each_object(Module) { |one| note(one) }
        end

        # @param path [String] of a file that has been loaded
        # @return [String, nil] the constant that its load was waiting for
        def constant_of(path)
          plain = path.delete_suffix(".rb")
          found = @by_base.fetch(File.basename(plain), []).find do |feature, _|
            plain == feature || plain.end_with?("/#{feature}")
          end
          found ? found.last : ZeitwerkFiles.constant_of(path)
        end

        private

        def note(one)
          CONSTANTS.bind_call(one, false).each do |constant|
            feature = PENDING.bind_call(one, constant, false)
            next unless feature

            feature = feature.delete_suffix(".rb")
            owner = NAME.bind_call(one)
            @by_base[File.basename(feature)] << [feature, owner == "Object" ? constant.name : "#{owner}::#{constant}"]
          end
        end
      end
    end
  end
end
