# frozen_string_literal: true

require "pando/version"
require "pando/errors"
require "pando/current_role"

# An application server whose worker processes share their memory: a worker that has warmed up becomes the mold that the
# next generation of workers is forked from.
module Pando
end

require "pando/railtie" if defined?(Rails::Railtie)
