# frozen_string_literal: true

require "rbconfig"
require "pando/server/launch"
require "pando/server/origin"
require "pando/server/surroundings"

module Pando
  class Server
    # What the server would be if it were started now, by the same command in the same folder: where a link led to
    # one release it may lead to another, with another Gemfile and another Pando.
    #
    # @api private
    class Successor
      # @param config [Config] in use
      def initialize(config)
        @config = config
      end

      # In the folder and with the Gemfile that it would have.
      # @yieldparam command [Array<String>] @yieldparam variables [Hash{String => String}]
      # @raise [Pando::Error, SystemCallError]
      def launch
        origin = Origin.noted or raise Error, "it is not known how this server was started"
        surroundings = Surroundings.new(@config.directory)
        surroundings.within do |before|
          now = ->(path) { surroundings.moved(path, before) }
          program = now.call(origin.program)
          raise Error, "#{program}, by which the server was started, is no more" unless File.file?(program)

          folders = origin.libraries.flat_map { |folder| ["-I", now.call(folder)] }
          yield [RbConfig.ruby, *Launch.jit, *folders, program, *@config.argv], ENV.to_h
        end
      end
    end
  end
end
