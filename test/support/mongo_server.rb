# frozen_string_literal: true

module Support
  # A stand-in for MongoDB's server, which Debian does not have, in a separate process that ends with the one that
  # started it.
  class MongoServer
    SCRIPT = File.expand_path("../fixtures/apps/library_rows/mongo_server.rb", __dir__)

    # @param bundle [Bench::Bundle] that contains bson
    def initialize(bundle)
      @bundle = bundle
    end

    # @return [Integer]
    attr_reader :port

    # @return [self] once it accepts connections
    def start
      @pipe = IO.popen([@bundle.environment, RbConfig.ruby, "-W0", SCRIPT], "r+")
      @port = Integer(@pipe.gets || raise("the stand-in for MongoDB did not start"))
      self
    end

    def stop
      @pipe&.close
      @pipe = nil
    end
  end
end
