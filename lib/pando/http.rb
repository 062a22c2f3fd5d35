# frozen_string_literal: true

require "pando/errors"
require "pando/native"

module Pando
  # The HTTP/1.x half of a worker: takes requests from the reactor or from the listeners, calls the Rack application,
  # and sends its responses. Loaded only in molds and workers; the monitor never needs it.
  #
  # A Cluster::Worker gets a {HTTP::ReactorHandler} or, in direct mode, a {HTTP::DirectHandler}. From there a request
  # goes through {HTTP::Connection}, from top to bottom. Applications meet the classes that are marked as public.
  #
  # @api private
  module HTTP
  end
end

require "pando/http/direct_handler"
require "pando/http/rackup"
require "pando/http/reactor_handler"
require "pando/http/threaded_handler"
require "pando/http/self_test"
