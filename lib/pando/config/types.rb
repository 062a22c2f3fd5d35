# frozen_string_literal: true

require "pando/config/types/fields"
require "pando/config/types/listen_on"
require "pando/config/types/numbers"
require "pando/config/types/texts"
