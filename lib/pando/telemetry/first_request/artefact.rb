# frozen_string_literal: true

module Pando
  module Telemetry
    class FirstRequest
      # A file that one of several processes makes, and that appears when it is whole.
      #
      # @api private
      class Artefact
        # @return [String] what it will be called
        attr_reader :path
        # @return [String] what it is called until then
        attr_reader :part

        # @param path [String]
        # @return [Artefact, nil] nil when it exists, or another process makes it
        def self.claim(path)
          part = "#{path}.part"
          File.open(part, File::WRONLY | File::CREAT | File::EXCL) { nil }
          return new(path, part) unless File.exist?(path)

          File.delete(part) # it was finished in between
          nil
        rescue Errno::EEXIST
          nil
        end

        def initialize(path, part)
          @path = path
          @part = part
        end

        def finish
          File.rename(part, path)
        end

        def give_up
          File.delete(part)
        rescue SystemCallError
          nil # it has said why before
        end
      end
    end
  end
end
