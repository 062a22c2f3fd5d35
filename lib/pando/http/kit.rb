# frozen_string_literal: true

module Pando
  module HTTP
    # What a connection needs of its worker: the application, the worker object,
    # {Limits}, the reader of requests, the {SoftTimeout} and its pid. One per worker.
    #
    # @api private
    Kit = Struct.new(:app, :worker, :limits, :reader, :soft_timeout, :pid)
  end
end
