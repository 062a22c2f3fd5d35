# frozen_string_literal: true

module Pando
  # Why a worker's memory is its own: its private pages by what they are for, and by what made them private.
  # A Recorder in the worker watches, the command `pando pages` asks for its Recording and makes a Census of it.
  module Pages
  end
end
